"""What members handed out: each record once, no partition by two, no stall that nobody explains."""
