"""The note a model gets when it takes a conversation over from another."""
