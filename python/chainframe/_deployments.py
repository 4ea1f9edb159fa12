"""Settings of a deployment as a mapping, and those of the environment."""

from __future__ import annotations

import inspect
from typing import Any

from chainframe import Deployment
from chainframe._native import _environment_deployment


def settings_of(deployment: Deployment) -> dict[str, Any]:
    """Return the arguments that make this deployment."""
    return {name: getattr(deployment, name) for name in inspect.signature(Deployment).parameters}


def of_environment(**given: Any) -> Deployment:  # noqa: ANN401 - arguments of Deployment
    """Return the deployment of the environment with other settings."""
    return Deployment(**{**settings_of(_environment_deployment()), **given})
