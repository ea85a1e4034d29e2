"""An agent as a file: everything that is known of it, out and back in."""
