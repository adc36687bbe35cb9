"""What members handed out: each record once, no partition by two, no pause that nobody explains."""
