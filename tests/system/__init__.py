"""The installation under a real systemd, in a container of its own: `make system`, as root, outside `make test`."""
