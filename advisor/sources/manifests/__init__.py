"""Files that say how engines are to be started: Kubernetes, Helm values, docker compose, docker inspect, systemd."""

from .reading import Declared, ManifestReading, read_manifest

__all__ = ["Declared", "ManifestReading", "read_manifest"]
