"""Captures: pcap and pcapng in, the RC request streams in them, and synthetic ones out."""
