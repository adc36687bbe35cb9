"""Logins at Kafka and ZooKeeper: keys of the profile, tokens, Kerberos, and the settings of each client."""
