"""Training of the score that tells what an agent found in a session and what it merely did."""
