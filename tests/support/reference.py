"""The reference model in one import: single connections, and whole captures."""

from .reference_capture import Classified, Expected, Key, classify, reference_capture
from .reference_model import Epoch, M, ReferenceConnection

__all__ = ["Classified", "Epoch", "Expected", "Key", "M", "ReferenceConnection", "classify",
           "reference_capture"]
