"""Claude as judge and writer: what it is asked, what its answers are worth, and what they cost."""
