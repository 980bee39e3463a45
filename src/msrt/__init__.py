"""msrt: a PyNative training runtime for pynative.yaml files. Importing it loads neither mindspore nor numpy."""
