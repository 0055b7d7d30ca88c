"""The error that every transport raises."""


class TransportError(RuntimeError):
    """A transport cannot do its work: what failed, and where, is in the message."""
