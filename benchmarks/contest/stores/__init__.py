"""One module a technology: the stores a conversation is kept in, as `Chat`s.

Each is used in the way that is best for it, and syncs every save where its API lets
us ask for that, so that all make the same promise.
"""
