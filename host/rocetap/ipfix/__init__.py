"""IPFIX (RFC 7011) without IO: arrays to messages, octets of a stream to events."""
