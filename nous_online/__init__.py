"""Long-term memory for AI agents: learn, recall, episodes, procedures, censors, working memory, context."""
