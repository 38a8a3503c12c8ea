"""The shipped Collector configurations hold together: they parse, and every component a pipeline names is there."""

from pathlib import Path
from typing import Any

import pytest
import yaml

FOLDER = Path(__file__).parent.parent / "collector-config"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.yaml")), ids=lambda p: p.name)
def test_every_component_of_a_pipeline_is_configured(path: Path) -> None:
    config: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    for pipeline in config["service"]["pipelines"].values():
        for section in ("receivers", "processors", "exporters"):
            assert set(pipeline.get(section, [])) <= set(config.get(section, {}))
    assert not any(name.split("/")[0] == "batch" for name in config.get("processors", {})), "the batch processor is on its way out"
    assert path.name in (FOLDER / "README.md").read_text(encoding="utf-8")
