"""Moving a group between the classic and the consumer protocol: the model and its view."""
