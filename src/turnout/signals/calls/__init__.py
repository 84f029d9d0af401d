"""What a call does: the tools of each harness, shell lines taken apart, what programs do. Reads no result."""
