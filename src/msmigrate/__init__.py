"""msmigrate: MindFormers Graph-mode configs become PyNative configs. Imports neither mindspore, numpy nor msrt."""

__version__ = "0.1.0"
