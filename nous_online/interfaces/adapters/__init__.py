"""The heart behind interfaces of others: Anthropic's memory tool and LangGraph's store."""
