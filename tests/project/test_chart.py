"""The Helm chart, rendered by Helm: valid for Kubernetes, and for what it runs.

The schemas are Kubernetes' own OpenAPI document of about version 1.23, the oldest that the chart
supports, and the custom resource definitions of the Prometheus operator.
"""

from __future__ import annotations

import copy
import json
import re
import subprocess
from functools import cache
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
import yaml

import streamlearn
from streamlearn import config
from streamlearn.cli.main import parser
from streamlearn.serving.http.guard import OPEN_PATHS
from streamlearn.telemetry.routes import PUBLIC_PATHS
from tests.broker.apache_kafka import Unavailable
from tests.project.test_documents import ROOT
from tests.support.go import module, program
from tests.support.missing import skip_unless_ci

if TYPE_CHECKING:
    from pathlib import Path

CHART = ROOT / "config" / "helm"
KUBERNETES = ("k8s.io/cli-runtime", "v0.37.0")
KUBERAY = ("github.com/ray-project/kuberay/ray-operator", "v1.5.1")
OPERATOR = ("github.com/prometheus-operator/prometheus-operator", "v0.85.0")
VALUES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "everything": {
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "storage": {"existingClaim": "models"},
        "nodeSelector": {"kubernetes.io/arch": "amd64"},
        "tolerations": [{"key": "spot", "operator": "Exists"}],
        "image": {"repository": "registry.local/streamlearn", "tag": "main"},
    },
    "fleet": {"fleet": {"enabled": True, "pods": 3}},
}


def helm(*arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        command = [str(program("helm")), *arguments]
    except Unavailable as reason:
        skip_unless_ci(reason)
    return subprocess.run(command, capture_output=True, text=True, check=False)


def rendered(tmp_path: Path, values: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the objects of a release."""
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    done = helm("template", "clicks", str(CHART), "-f", str(file), "--kube-version", "1.30")
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one]


@pytest.fixture(params=VALUES)
def objects(request: pytest.FixtureRequest, tmp_path: Path) -> list[dict[str, Any]]:
    return rendered(tmp_path, VALUES[request.param])


def strict(schema: Any) -> Any:
    """Return a schema that refuses unknown fields where it lists the known ones."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: strict(one) for name, one in schema.items()}
    known = isinstance(found.get("properties"), dict) and "$ref" not in found
    if known and not found.get("x-kubernetes-preserve-unknown-fields"):
        found.setdefault("additionalProperties", False)
    if found.get("format") == "int-or-string" or found.get("x-kubernetes-int-or-string"):
        return {"type": ["integer", "string"]}
    return found


@cache
def kubernetes() -> dict[str, Any]:
    """Return the definitions of Kubernetes."""
    path = module(*KUBERNETES) / "artifacts" / "openapi" / "swagger.json"
    definitions = json.loads(path.read_text())["definitions"]
    found: dict[str, Any] = strict(definitions)
    # a quantity may be written as a number
    found["io.k8s.apimachinery.pkg.api.resource.Quantity"] = {"type": ["string", "number"]}
    return found


@cache
def service_monitor() -> dict[str, Any]:
    """Return the schema of a ServiceMonitor."""
    path = module(*OPERATOR) / "example" / "prometheus-operator-crd"
    text = (path / "monitoring.coreos.com_servicemonitors.yaml").read_text()
    found = strict(yaml.safe_load(text)["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    found["properties"]["metadata"] = {"type": "object"}
    return dict(found)


@cache
def ray_cluster() -> dict[str, Any]:
    """Return the schema of a RayCluster."""
    path = module(*KUBERAY) / "config" / "crd" / "bases" / "ray.io_rayclusters.yaml"
    versions = yaml.safe_load(path.read_text())["spec"]["versions"]
    [schema] = [one["schema"] for one in versions if one["name"] == "v1"]
    found = strict(schema["openAPIV3Schema"])
    found["properties"]["metadata"] = {"type": "object"}
    return dict(found)


CUSTOM = {"ServiceMonitor": service_monitor, "RayCluster": ray_cluster}


def validate(one: dict[str, Any]) -> None:
    """Raise ValidationError if an object is not valid."""
    if one["kind"] in CUSTOM:
        jsonschema.validate(one, CUSTOM[one["kind"]]())
        return
    group, _, version = one["apiVersion"].rpartition("/")
    name = next(
        name
        for name, schema in kubernetes().items()
        if {"group": group, "kind": one["kind"], "version": version}
        in schema.get("x-kubernetes-group-version-kind", [])
    )
    root = {"$ref": f"#/definitions/{name}", "definitions": kubernetes()}
    jsonschema.Draft4Validator(root).validate(one)


def test_objects_are_valid(objects: list[dict[str, Any]]) -> None:
    try:
        kubernetes(), service_monitor(), ray_cluster()
    except Unavailable as reason:
        skip_unless_ci(reason)
    kinds = [one["kind"] for one in objects]
    assert {"ConfigMap", "Job", "Deployment", "HorizontalPodAutoscaler"} <= {*kinds}
    assert ("StatefulSet" in kinds) != ("RayCluster" in kinds)
    names = [(one["kind"], one["metadata"]["name"]) for one in objects]
    assert len(set(names)) == len(names)
    for one in objects:
        validate(one)
        broken = copy.deepcopy(one)
        broken.setdefault("spec", broken)["replica"] = 2
        with pytest.raises(jsonschema.ValidationError):
            validate(broken)


def pod_templates(objects: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the templates of all pods."""
    found = {
        one["metadata"]["name"]: one["spec"]["template"]
        for one in objects
        if one["kind"] in {"StatefulSet", "Deployment", "Job"}
    }
    for one in objects:
        if one["kind"] == "RayCluster":
            name = one["metadata"]["name"]
            found[f"{name}-head"] = one["spec"]["headGroupSpec"]["template"]
            for group in one["spec"]["workerGroupSpecs"]:
                found[f"{name}-{group['groupName']}"] = group["template"]
    return found


def selected(selector: dict[str, str], pods: dict[str, dict[str, str]]) -> list[str]:
    return [name for name, labels in pods.items() if selector.items() <= labels.items()]


def test_each_selector_finds_one_component(objects: list[dict[str, Any]]) -> None:
    templates = pod_templates(objects)
    pods = {name: template["metadata"]["labels"] for name, template in templates.items()}
    services = {
        one["metadata"]["name"]: one["metadata"]["labels"]
        for one in objects
        if one["kind"] == "Service"
    }
    for one in objects:
        spec = one.get("spec", {})
        if one["kind"] in {"StatefulSet", "Deployment", "PodDisruptionBudget"}:
            assert len(selected(spec["selector"]["matchLabels"], pods)) == 1
        elif one["kind"] == "Service":
            assert len(selected(spec["selector"], pods)) == 1
        elif one["kind"] == "ServiceMonitor":
            assert len(selected(spec["selector"]["matchLabels"], services)) == 1
        elif one["kind"] == "HorizontalPodAutoscaler":
            assert spec["scaleTargetRef"]["name"] in pods


def test_what_pods_run(objects: list[dict[str, Any]]) -> None:
    """The commands, the probes and the configuration are those of streamlearn."""
    text = next(one for one in objects if one["kind"] == "ConfigMap")["data"]["streamlearn.toml"]
    environ = {"STREAMLEARN_TOKEN": "secret"}
    checked = config.parse(text, overrides={"source.client": "kafka-python"}, environ=environ)
    assert checked.checkpoint is not None
    assert checked.checkpoint.required
    for template in pod_templates(objects).values():
        ours = [one for one in template["spec"]["containers"] if one["name"] != "ray"]
        if not ours:
            continue
        (container,) = ours
        parser().parse_args(container["args"])
        mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
        assert checked.checkpoint.path.startswith(mounts["state"])
        assert container["args"][1].startswith(mounts["config"])
        for name in ("livenessProbe", "readinessProbe"):
            if name in container:
                assert container[name]["httpGet"]["path"] in OPEN_PATHS | PUBLIC_PATHS
                assert container[name]["httpGet"]["port"] in {
                    port["name"] for port in container["ports"]
                }


def test_ray_is_closed_to_others(tmp_path: Path) -> None:
    """Its pods ask for a token, run nothing of a user's, and only they connect to each other."""
    found = rendered(tmp_path, VALUES["fleet"])
    (cluster,) = [one for one in found if one["kind"] == "RayCluster"]
    (policy,) = [one for one in found if one["kind"] == "NetworkPolicy"]
    assert cluster["spec"]["authOptions"] == {"mode": "token"}
    own = {"matchLabels": {"ray.io/cluster": cluster["metadata"]["name"]}}
    assert policy["spec"]["podSelector"] == own
    within, page = policy["spec"]["ingress"]
    assert within == {"from": [{"podSelector": own}]}
    head = cluster["spec"]["headGroupSpec"]["template"]["spec"]
    ray, daemon = head["containers"]
    assert ray["name"] == "ray"  # KubeRay starts Ray in the first one
    assert page["ports"] == [{"port": one["name"]} for one in daemon["ports"]]
    port = ray["livenessProbe"]["tcpSocket"]["port"]
    assert f"127.0.0.1:{port}" in daemon["args"]
    shared = {"/tmp", "/dev/shm"}  # noqa: S108 - of the containers: sockets, and the object store
    for one in (ray, daemon):
        assert shared <= {mount["mountPath"] for mount in one["volumeMounts"]}


def test_jobs_have_the_names_that_the_alerts_expect(tmp_path: Path) -> None:
    found = rendered(tmp_path, VALUES["everything"])
    jobs = {
        one["spec"]["endpoints"][0]["relabelings"][0]["replacement"]
        for one in found
        if one["kind"] == "ServiceMonitor"
    }
    text = (ROOT / "config" / "prometheus" / "prometheus.yml").read_text()
    assert jobs == {one["job_name"] for one in yaml.safe_load(text)["scrape_configs"]}


def test_an_upgrade_does_not_begin_again(tmp_path: Path) -> None:
    kinds = [one["kind"] for one in rendered(tmp_path, {})]
    assert "Job" in kinds
    done = helm("template", "clicks", str(CHART), "--is-upgrade", "--kube-version", "1.30")
    assert "Job" not in [one["kind"] for one in yaml.safe_load_all(done.stdout) if one]


@pytest.mark.parametrize(
    "wrong", ["server.replicas=3", "fleet.pods=0", "daemon.replicas=0", "config=", "storage.size=5"]
)
def test_wrong_values_are_refused(wrong: str) -> None:
    done = helm("template", "clicks", str(CHART), "--set", wrong, "--kube-version", "1.30")
    assert done.returncode != 0
    assert wrong.split(".", maxsplit=1)[0].partition("=")[0] in done.stderr


def test_the_values_of_the_guide(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "guides" / "kubernetes.md").read_text("utf-8")
    (block,) = re.findall(r"```yaml\n(# values.yaml.*?)```", guide, re.DOTALL)
    found = rendered(tmp_path, yaml.safe_load(block))
    test_what_pods_run(found)
    claim = next(one for one in found if one["kind"] == "PersistentVolumeClaim")
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]


def test_lint_and_version() -> None:
    done = helm("lint", str(CHART), "--strict")
    assert done.returncode == 0, done.stdout
    about = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert about["appVersion"] == streamlearn.__version__
