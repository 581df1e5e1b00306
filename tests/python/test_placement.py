"""The placement report: every node of the model is accounted for."""

import json
import shutil
import subprocess

import numpy as np
import onnx
import pytest
from onnx import parser

import epona

CPU = "CPUExecutionProvider"
NET = """<ir_version: 8, opset_import: ["" : 17]>
net (float[1,3,8,8] x, bool cond) => (float[1,4,8,8] y, float[1,3,8,8] z)
<float one = {1.0}, float two = {2.0}> {
  [conv] c = Conv<pads=[1,1,1,1]>(x, w, b)
  [relu] r = Relu(c)
  [same] i = Identity(r)
  [three] k = Add(one, two)
  [scale] y = Mul(i, k)
  [unread] u = Neg(r)
  [branch] z = If (cond) <
    then_branch = yes () => (float[1,3,8,8] t) { [inner] t = Sigmoid(x) },
    else_branch = no () => (float[1,3,8,8] e) { [other] e = Tanh(x) }>
}"""


def net():
    model = parser.parse_model(NET)
    for name, shape in (("w", (4, 3, 3, 3)), ("b", (4,))):
        array = np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
    return model.SerializeToString()


@pytest.fixture(scope="module")
def session():
    return epona.InferenceSession(net())


def test_every_node_is_accounted_for(session):
    placement = session.get_placement()
    rows = {node["name"]: node for node in placement}
    assert list(rows) == ["conv", "relu", "same", "three", "scale", "unread", "branch", "other", "inner"]
    assert rows["conv"]["provider"] == rows["branch"]["provider"] == rows["inner"]["provider"] == CPU
    assert rows["inner"]["graph"] == "yes" and rows["other"]["graph"] == "no" and rows["conv"]["graph"] == "net"
    assert rows["three"]["vanished"] == "folded into a constant by constant_folding"
    assert rows["same"]["vanished"] == "removed by eliminate_identity"
    assert rows["unread"]["vanished"].startswith("removed by eliminate_dead_nodes")
    assert rows["relu"]["fused_by"] and rows["relu"]["provider"] == CPU and "Conv" in rows["relu"]["runs_as"]
    assert rows["conv"]["inputs"] == ["x", "w", "b"] and rows["conv"]["outputs"] == ["c"]
    for node in placement:
        assert bool(node["provider"]) != bool(node["vanished"]), node


def test_shares(session):
    share = session.placement.providers[CPU]
    assert share["node_share"] == 1 and share["flop_share"] == 1 and share["nodes"] == 6
    rows = {node["name"]: node for node in session.placement}
    assert rows["conv"]["flops"] == 2 * 4 * 8 * 8 * 3 * 3 * 3
    assert rows["relu"]["flops"] == 4 * 8 * 8


def test_phases(session):
    phases = session.placement.phases
    assert {"load", "providers", "passes", "plan"} <= set(phases) and all(ms >= 0 for ms in phases.values())


def test_nothing_is_rewritten_without_passes():
    options = epona.SessionOptions()
    options.graph_optimization_level = epona.GraphOptimizationLevel.ORT_DISABLE_ALL
    placement = epona.InferenceSession(net(), options).placement
    assert all(node["provider"] == CPU and not node["fused_by"] and not node["vanished"] for node in placement)
    assert not placement.inserted


def test_text_json_and_html(session, tmp_path):
    placement = session.placement
    text = str(placement)
    assert "conv" in text and "removed by eliminate_identity" in text and "100.0%" in text
    assert json.loads(placement.to_json())["nodes"] == placement.nodes
    page = placement.to_html(tmp_path / "placement.html")
    assert (tmp_path / "placement.html").read_text(encoding="utf-8") == page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "") and "https://" not in page


def chromium():
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.mark.skipif(chromium() is None, reason="no Chromium here")
def test_page_in_a_browser(session, tmp_path):
    page = tmp_path / "placement.html"
    session.placement.to_html(page)

    def dom(fragment=""):
        command = [chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        command += [f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=3000", "--dump-dom"]
        result = subprocess.run([*command, page.as_uri() + fragment], capture_output=True, text=True, timeout=120, check=True)
        return result.stdout

    whole = dom()
    assert whole.count('class="node"') == 9 and "9 of 9 nodes" in whole
    assert "<title>conv  (Conv)" in whole and 'data-provider="CPUExecutionProvider"' in whole
    filtered = dom("#text=Sigmoid")
    assert "1 of 9 nodes" in filtered and filtered.count('class="node off"') == 8
