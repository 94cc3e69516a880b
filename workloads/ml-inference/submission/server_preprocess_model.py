"""Trains the network, unless it is there."""

from model import trained

trained()
