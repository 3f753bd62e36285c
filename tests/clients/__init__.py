"""Published JMAP clients against the reader, each in an environment of its own."""
