"""The shipped configurations hold together, as far as can be told without the programs that read them; with them: tests/backends."""

import json
import re
from pathlib import Path
from typing import Any

import kubernetes_validate  # type: ignore[import-untyped]
import pytest
import yaml

FOLDER = Path(__file__).parent.parent / "collector-config"
COLLECTORS = ["dev", "gateway", "agent-loadbalance", "replay-from-file"]
ON_TOP = ["second-view", "into-store"]
README = (FOLDER / "README.md").read_text(encoding="utf-8")

KNOWN: dict[str, set[str]] = {
    "extensions": {"health_check", "file_storage", "jaeger_storage", "jaeger_query", "healthcheckv2"},
    "receivers": {"otlp", "otlp_json_file"},
    "processors": {"memory_limiter", "transform", "redaction", "tail_sampling"},
    "exporters": {"file", "otlp_http", "load_balancing", "jaeger_storage_exporter"},
}
"""Names of today; ``batch``, ``otlp``/``otlphttp`` as exporters, ``loadbalancing``, ``otlpjsonfile`` are of yesterday."""
CORE = {"otlp", "memory_limiter", "file", "otlp_http"}
MIB_64 = 67108864


def load(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))
    return loaded


def configuration(name: str) -> dict[str, Any]:
    """One that a program starts with: ``second-view`` and ``into-store`` go on top of ``gateway``."""
    if name not in ON_TOP:
        return load(name)
    below, above = load("gateway"), load(name)
    below["exporters"].update(above["exporters"])
    for pipeline, parts in above["service"]["pipelines"].items():
        below["service"]["pipelines"][pipeline].update(parts)
    return below


WITH_PIPELINES = [*COLLECTORS, *ON_TOP, "jaeger"]


@pytest.mark.parametrize("name", WITH_PIPELINES)
def test_every_component_is_known_configured_and_used(name: str) -> None:
    config = configuration(name)
    used: dict[str, set[str]] = {"extensions": set(config["service"].get("extensions", []))}
    for section in ("receivers", "processors", "exporters"):
        used[section] = {part for pipeline in config["service"]["pipelines"].values() for part in pipeline.get(section, [])}
    for section, names in used.items():
        configured = set(config.get(section, {}))
        assert names == configured, section
        assert {part.split("/")[0] for part in configured} <= KNOWN[section], section


@pytest.mark.parametrize(
    ("manifest", "names"),
    [("manifest.yaml", ["dev", "gateway", *ON_TOP, "agent-loadbalance"]), ("manifest-files.yaml", ["replay-from-file"])],
)
def test_the_collectors_of_the_tests_have_just_what_the_configurations_use(manifest: str, names: list[str]) -> None:
    built = yaml.safe_load((Path(__file__).parent / "backends" / manifest).read_text(encoding="utf-8"))
    for section in ("extensions", "receivers", "processors", "exporters"):
        kind = section.removesuffix("s")
        modules = {component["gomod"].split()[0].rpartition("/")[2].removesuffix(kind) for component in built.get(section, [])}
        used = {part.split("/")[0].replace("_", "") for name in names for part in configuration(name).get(section, {})}
        assert modules == used, section


def test_dev_needs_the_core_distribution_only() -> None:
    config = load("dev")
    assert {part.split("/")[0] for s in ("receivers", "processors", "exporters", "extensions") for part in config.get(s, {})} <= CORE


@pytest.mark.parametrize("name", WITH_PIPELINES)
def test_it_starts_beside_another_that_has_the_port_of_metrics(name: str) -> None:
    metrics = configuration(name)["service"]["telemetry"]["metrics"]
    if metrics.get("level") != "none":
        (reader,) = metrics["readers"]
        assert re.search(r"METRICS_PORT", str(reader["pull"]["exporter"]["prometheus"]["port"]))


@pytest.mark.parametrize("name", WITH_PIPELINES)
def test_nothing_is_dropped_where_it_overflows(name: str) -> None:
    for exporter, settings in configuration(name)["exporters"].items():
        if exporter.startswith(("otlp_http", "load_balancing")):
            queue = settings["sending_queue"]
            assert queue["block_on_overflow"] is True
            assert (queue.get("storage") == "file_storage") == (name in {"gateway", *ON_TOP, "agent-loadbalance"})
        if exporter.startswith("file"):
            assert settings["rotation"], "without it the file is emptied at every start, and written late"
    assert all(
        "memory_limiter" in (p.get("processors") or ["memory_limiter"])[0] for p in configuration(name)["service"]["pipelines"].values()
    )


def _receivers(config: dict[str, Any]) -> dict[str, Any]:
    holder = config.get("distributor", config)
    protocols: dict[str, Any] = holder["receivers"]["otlp"]["protocols"]
    return protocols


@pytest.mark.parametrize("name", ["dev", "gateway", "agent-loadbalance", "jaeger", "tempo"])
def test_messages_of_64_mib_come_in(name: str) -> None:
    protocols = _receivers(load(name))
    assert protocols["grpc"]["max_recv_msg_size_mib"] == 64
    assert protocols["http"]["max_request_body_size"] == MIB_64


def test_tempo_cuts_nothing() -> None:
    config = load("tempo")
    sizes = [config["server"][f"grpc_server_max_{way}_msg_size"] for way in ("recv", "send")]
    assert min(*sizes, config["querier"]["frontend_worker"]["grpc_client_config"]["max_send_msg_size"]) > MIB_64
    assert config["distributor"]["max_attribute_bytes"] == 0
    assert config["overrides"]["defaults"]["global"]["max_bytes_per_trace"] > MIB_64
    assert config["overrides"]["defaults"]["ingestion"]["burst_size_bytes"] > MIB_64


@pytest.mark.parametrize("profile", ["jaeger", "tempo", "full", "store"])
def test_the_services_of_a_profile_find_their_files_and_each_other(profile: str) -> None:
    compose = load("docker-compose")
    services = {name: s for name, s in compose["services"].items() if profile in s["profiles"]}
    assert len([name for name in services if name.startswith("gateway")]) == 1
    ports: list[str] = []
    for service in services.values():
        if service.get("network_mode"):
            assert service["network_mode"].removeprefix("service:") in services, "on its loopback"
        ports += (published.rsplit(":", 1)[0] for published in service["ports"])
        mounted = {}
        for volume in service.get("volumes", []):
            source, target = volume.split(":")[:2]
            if source == "./traces":
                continue
            assert source in compose["volumes"] or (FOLDER / source).exists(), volume
            mounted[target] = source
        for argument in service.get("command", []):
            path = re.search(r"/etc/.*\.yaml", argument)
            assert path is None or path[0] in mounted, argument
        for variable, value in service.get("environment", {}).items():
            if variable.endswith("VIEW_ENDPOINT"):
                assert value.removeprefix("http://").removesuffix(":4318") in services
            if variable.startswith(("OTLP_", "JAEGER_", "TEMPO_", "GATEWAY_")):
                assert any(variable in variables(source) for source in mounted.values() if source.endswith(".yaml")), variable
    assert len(ports) == len(set(ports))
    assert all(port.startswith("127.0.0.1:") for port in ports), "nothing is open to the network unless somebody asks for it"


def variables(name: str) -> dict[str, str]:
    """Variables of a configuration, with their defaults; Tempo and compose have them without ``env:``."""
    found = re.findall(r"(?<!\$)\$\{(?:env:)?(\w+)(:-[^}]*)?\}", (FOLDER / name).read_text(encoding="utf-8"))
    assert all(default for _, default in found), name
    return {variable: default.removeprefix(":-") for variable, default in found}


def test_every_variable_has_a_default_and_is_explained() -> None:
    for path in FOLDER.glob("*.yaml"):
        for name in variables(path.name):
            assert name in README or name.startswith("JAEGER_") or name.endswith("_VERSION"), f"{path.name}: {name}"


def test_they_run_beside_each_other_on_one_machine() -> None:
    """A Collector, Jaeger and Tempo: everything on loopback, no port twice, and each is where the Collector looks for it."""
    ports: list[str] = []
    for name in ("gateway", "jaeger", "tempo"):
        given = variables(f"{name}.yaml")
        ports += (default for variable, default in given.items() if variable.endswith("_PORT"))
        assert {default for variable, default in given.items() if variable.endswith("HOST")} == {"127.0.0.1"}
    ports.append(str(load("tempo")["server"]["http_listen_port"]))
    assert len(ports) == len(set(ports))
    assert variables("gateway.yaml")["VIEW_ENDPOINT"].endswith(f":{variables('jaeger.yaml')['JAEGER_OTLP_HTTP_PORT']}")
    assert variables("second-view.yaml")["SECOND_VIEW_ENDPOINT"].endswith(f":{variables('tempo.yaml')['TEMPO_OTLP_HTTP_PORT']}")


def test_the_readme_names_every_file() -> None:
    for path in FOLDER.glob("*.yaml"):
        assert f"`{path.name}`" in README


def test_grafana_finds_its_data_source_and_dashboard() -> None:
    sources = yaml.safe_load((FOLDER / "grafana/provisioning/datasources/datasources.yaml").read_text(encoding="utf-8"))["datasources"]
    (provider,) = yaml.safe_load((FOLDER / "grafana/provisioning/dashboards/dashboards.yaml").read_text(encoding="utf-8"))["providers"]
    grafana = load("docker-compose")["services"]["grafana"]
    assert any(volume.split(":")[1] == provider["options"]["path"] for volume in grafana["volumes"])
    for path in (FOLDER / "grafana/dashboards").glob("*.json"):
        for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]:
            assert panel["datasource"]["uid"] in {source["uid"] for source in sources}
            for target in panel["targets"]:
                assert target["query"].count("{") == target["query"].count("}") > 0


# ---- Kubernetes ------------------------------------------------------------------------------------------------------

MANIFESTS = {path.name: list(yaml.safe_load_all(path.read_text(encoding="utf-8"))) for path in sorted((FOLDER / "k8s").glob("*.yaml"))}


@pytest.mark.parametrize("name", MANIFESTS)
def test_manifests_are_valid(name: str) -> None:
    for document in MANIFESTS[name]:
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)


@pytest.mark.parametrize("name", MANIFESTS)
def test_manifests_fit_the_configuration_that_they_run(name: str) -> None:
    service, workload = MANIFESTS[name]
    template = workload["spec"]["template"]
    (container,) = template["spec"]["containers"]
    assert service["spec"]["selector"] == workload["spec"]["selector"]["matchLabels"] == template["metadata"]["labels"]
    names = {port["name"] for port in container["ports"]}
    assert {port["targetPort"] for port in service["spec"]["ports"]} <= names
    assert container["readinessProbe"]["httpGet"]["port"] in names

    (argument,) = container["args"]
    file = argument.rpartition("/")[2]
    text = (FOLDER / file).read_text(encoding="utf-8")
    mounts = {mount["mountPath"] for mount in container["volumeMounts"]}
    for variable in container["env"]:
        assert f"${{env:{variable['name']}:-" in text
        if variable["value"].startswith("/"):
            assert any(variable["value"].startswith(mount) for mount in mounts), "somewhere that can be written"
    (configuration,) = (volume["configMap"]["name"] for volume in template["spec"]["volumes"] if "configMap" in volume)
    head = (FOLDER / "k8s" / name).read_text(encoding="utf-8")
    assert f"kubectl create configmap {configuration} --from-file={file}" in head
    limit = int(re.search(r"limit_mib: (\d+)", text)[1])  # type: ignore[index]
    size, unit = re.fullmatch(r"(\d+)([MG])i", container["resources"]["limits"]["memory"]).groups()  # type: ignore[union-attr]
    assert int(size) * {"M": 1, "G": 1024}[unit] > limit


def test_the_agents_of_kubernetes_find_its_gateways() -> None:
    gateways, _ = MANIFESTS["gateway.yaml"]
    _, agents = MANIFESTS["agent.yaml"]
    environment = {entry["name"]: entry["value"] for entry in agents["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert gateways["spec"]["clusterIP"] == "None", "a name for each"
    assert environment["GATEWAY_HOST"] == gateways["metadata"]["name"]
    assert int(environment["GATEWAY_PORT"]) in {port["port"] for port in gateways["spec"]["ports"]}
