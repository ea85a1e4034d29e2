"""What an agent is shown of its memories, within a budget of tokens."""
