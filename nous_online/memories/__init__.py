"""The memories of an agent: facts, episodes, procedures, censors, decisions, sessions, and what is done to them."""
