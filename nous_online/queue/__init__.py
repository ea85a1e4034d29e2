"""What calls leave to be done: completions and events, whoever does them, and the built-in reactions."""
