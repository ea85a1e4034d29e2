"""What an episode comes down to: a title, a summary, facts and cautions, lifted from its own sentences."""
