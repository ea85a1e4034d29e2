"""What texts say: vectors, tokens, pairs of statements, actions, summaries, and the models asked about them."""
