"""For `faust -A streams.app worker`: Faust's command line looks for `app` here."""

from streams.worker.app import __getattr__ as __getattr__
