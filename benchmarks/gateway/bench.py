"""Compare gateways on one machine: server on core 0, mock upstream and load on core 1.

    python bench.py --work DIR [--sy VENV] [--litellm VENV] [--portkey DIR] [--turnout VENV]
                    [--only NAME,..] [--scenarios NAME,..] [--rounds N] [--seconds S] [--unpinned]

VENV: a virtual environment holding that contender; one not given is left out. Every contender is
started once and stays up; each round runs scenario by scenario, contender by contender, so that the
figures being compared are taken seconds apart. Prints medians over rounds and ratios to `--base`.
Raw results go to DIR/results.jsonl. All traffic is on 127.0.0.1."""

import argparse
import json
import os
import signal
import statistics as st
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import bodies

HERE = Path(__file__).parent
MOCK = 9101
SHAPES = {"a": "0-0-20", "s": "2-1-10", "d": "20-5-20"}  # delay ms - gap ms - events
#            kind, stream, shape, connections, figure of merit
SCENARIOS = {
    "chat_sat": ("chat", 0, "a", 64, "rps"),
    "agent_sat": ("agent", 0, "a", 32, "rps"),
    "chat_stream_sat": ("chat", 1, "a", 64, "rps"),
    "agent_stream_sat": ("agent", 1, "a", 32, "rps"),
    "chat_c1": ("chat", 0, "a", 1, "lat"),
    "agent_c1": ("agent", 0, "a", 1, "lat"),
    "chat_c16": ("chat", 0, "d", 16, "lat"),
    "agent_c16": ("agent", 0, "d", 16, "lat"),
    "chat_ttfc_c1": ("chat", 1, "s", 1, "ttfc"),
    "agent_ttfc_c1": ("agent", 1, "s", 1, "ttfc"),
    "agent_ttfc_c16": ("agent", 1, "d", 16, "ttfc"),
}


def sy_config(work):
    out = [
        "schema_version = 1",
        f'[llm_clients.mock]\nformat = "openai_chat"\nbase_url = "http://127.0.0.1:{MOCK}/v1"\nmax_retries = 0',
    ]
    for k, v in SHAPES.items():
        for t in ("strong", "weak"):
            out.append(f'[targets.{t}_{k}]\nid = "{t}-{v}"\nllm_client = "mock"')
        out += [
            f'[routes.pt_{k}]\nid = "pt-{v}"\ntype = "passthrough"\ntarget = "weak_{k}"',
            f'[routes.rnd_{k}]\nid = "rnd-{v}"\ntype = "random"\ntargets = ["weak_{k}", "strong_{k}"]\nseed = 42',
            f'[routes.stage_{k}]\nid = "stage-{v}"\ntype = "stage_router"\ncapable_target = "strong_{k}"\n'
            f'efficient_target = "weak_{k}"\npicker = "efficient_first"\nconfidence_threshold = 0.5',
        ]
    p = work / "sy.toml"
    p.write_text("\n".join(out) + "\n")
    return p


def turnout_config(work):
    out = [f'[upstreams.mock]\nformat = "openai_chat"\nbase_url = "http://127.0.0.1:{MOCK}/v1"']
    for k, v in SHAPES.items():
        for t in ("strong", "weak"):
            out.append(f'[targets.{t}_{k}]\nupstream = "mock"\nmodel = "{t}-{v}"')
        out += [
            f'[routes."pt-{v}"]\ntype = "passthrough"\ntarget = "weak_{k}"',
            f'[routes."stage-{v}"]\ntype = "stage"\nefficient = "weak_{k}"\ncapable = "strong_{k}"\nthreshold = 0.5',
        ]
    out.append(f'[ledger]\nurl = "sqlite:///{work}/turnout.db"\ncapture = "signals"')
    p = work / "turnout.toml"
    p.write_text("\n".join(out) + "\n")
    return p


def litellm_config(work):
    out = ["model_list:"]
    for v in SHAPES.values():
        out += [
            f"  - model_name: m-{v}",
            "    litellm_params:",
            f"      model: openai/m-{v}",
            f"      api_base: http://127.0.0.1:{MOCK}/v1",
            "      api_key: none",
        ]
    out += ["litellm_settings:", "  telemetry: false", "  num_retries: 0", "  drop_params: true"]
    # a load run ends by hanging up, which the router would count as upstream failures
    out += ["router_settings:", "  disable_cooldowns: true", "  num_retries: 0"]
    p = work / "litellm.yaml"
    p.write_text("\n".join(out) + "\n")
    return p


def contenders(a, work):
    """name -> (server key, command, env, port, protocol, model prefix, *headers). Same key: same process."""
    c = {"direct": (None, None, {}, MOCK, "openai", "m-")}
    if a.sy:
        cmd = [f"{a.sy}/bin/python", HERE / "sy_server.py", sy_config(work), "9201"]
        for n, proto, pre in (
            ("sy-passthrough", "openai", "pt-"),
            ("sy-random", "openai", "rnd-"),
            ("sy-stage", "openai", "stage-"),
            ("sy-anth2oai", "anthropic", "stage-"),
        ):
            c[n] = ("sy", cmd, {"RUST_LOG": "warn"}, 9201, proto, pre)
        # as shipped: one INFO line per request
        c["sy-stage-log"] = ("sy-log", [*cmd[:-1], "9203"], {}, 9203, "openai", "stage-")
    if a.litellm:
        cmd = [f"{a.litellm}/bin/litellm", "--config", litellm_config(work), "--host", "127.0.0.1", "--port", "9202"]
        env = {"LITELLM_LOG": "ERROR", "LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MODE": "PRODUCTION"}
        env["LITELLM_USE_CHAT_COMPLETIONS_URL_FOR_ANTHROPIC_MESSAGES"] = "true"
        env["LITELLM_DANGEROUSLY_PERMIT_WEAK_OR_UNSET_MASTER_KEY"] = "true"
        c["litellm"] = ("litellm", cmd, env, 9202, "openai", "m-")
        c["litellm-anth2oai"] = ("litellm", cmd, env, 9202, "anthropic", "m-")
    if a.portkey:
        js = a.portkey / "node_modules/@portkey-ai/gateway/build/start-server.js"
        head = ["x-portkey-provider: openai", f"x-portkey-custom-host: http://127.0.0.1:{MOCK}/v1"]
        head += ["authorization: Bearer none"]
        c["portkey"] = ("portkey", ["node", js, "--port=9204", "--headless"], {}, 9204, "openai", "m-", *head)
    if a.turnout:
        cmd = [f"{a.turnout}/bin/turnout", "serve", turnout_config(work), "--host", "127.0.0.1", "--port", "9220"]
        for n, proto, pre in (
            ("turnout-passthrough", "openai", "pt-"),
            ("turnout-stage", "openai", "stage-"),
            ("turnout-anth2oai", "anthropic", "stage-"),
        ):
            c[n] = ("turnout", cmd, {}, 9220, proto, pre)
    return c


def tree(pid):
    out, todo = [], [pid]
    while todo:
        p = todo.pop()
        out.append(p)
        try:
            for t in os.listdir(f"/proc/{p}/task"):
                todo += map(int, Path(f"/proc/{p}/task/{t}/children").read_text().split())
        except OSError:
            pass
    return out


def usage(pid):
    """CPU seconds and resident MiB of a process and its children."""
    cpu = rss = 0
    for p in tree(pid):
        try:
            f = Path(f"/proc/{p}/stat").read_text().rsplit(")", 1)[1].split()
            cpu += int(f[11]) + int(f[12])
            rss += int(f[21]) * 4096
        except OSError:
            pass
    return cpu / os.sysconf("SC_CLK_TCK"), rss / 2**20


def settle(pid, most=4.0):
    """Wait until a server has dropped the requests that the load run left behind."""
    end = time.time() + most
    while time.time() < end:
        a = usage(pid)[0]
        time.sleep(0.1)
        if usage(pid)[0] - a < 0.02:
            return


def start(cmd, core, env=None, log=None):
    pre = [] if core is None else ["taskset", "-c", core]
    p = subprocess.Popen(
        pre + [str(x) for x in cmd],
        env={**os.environ, **(env or {})},
        stdout=log or subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    prioritise(p.pid)
    return p


def prioritise(pid):
    """Niceness of a session: Linux autogroups make a plain nice value moot between sessions."""
    if NICE:
        try:
            Path(f"/proc/{pid}/autogroup").write_text(str(NICE))
        except OSError as e:
            print(f"! priority not set: {e}", file=sys.stderr)


def wait_ready(port, proc, secs=120):
    end = time.time() + secs
    while time.time() < end:
        if proc.poll() is not None:
            return False
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1)
            return True
        except urllib.error.HTTPError:
            return True
        except OSError:
            time.sleep(0.3)
    return False


NICE = 0
WARM = 0.4


def main():
    global NICE
    ap = argparse.ArgumentParser()
    ap.add_argument("--work", required=True, type=Path)
    ap.add_argument("--sy")
    ap.add_argument("--litellm")
    ap.add_argument("--portkey", type=Path, help="directory with the npm package @portkey-ai/gateway installed")
    ap.add_argument("--turnout", help="virtual environment that holds turnout")
    ap.add_argument("--only")
    ap.add_argument("--scenarios")
    ap.add_argument("--rounds", type=int, default=3)
    ap.add_argument("--seconds", type=float, default=1.5)
    ap.add_argument("--unpinned", action="store_true", help="let everything use every core")
    ap.add_argument("--nice", type=int, default=0, help="priority for the run on a machine that others use")
    ap.add_argument("--base", default="direct,sy-stage,litellm", help="ratios to these")
    a = ap.parse_args()
    NICE = a.nice
    if NICE:
        os.setsid() if os.getpgid(0) != os.getpid() else None
        prioritise(os.getpid())
    a.work = work = a.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    for n in ("mock", "load"):
        subprocess.run(["cc", "-O2", "-o", work / n, HERE / f"{n}.c"], check=True)
    srv, cli = (None, None) if a.unpinned else ("0", "1")
    cs = contenders(a, work)
    if a.only:
        keep = a.only.split(",")
        cs = {k: v for k, v in cs.items() if k in keep}
    scen = {k: v for k, v in SCENARIOS.items() if not a.scenarios or k in a.scenarios.split(",")}
    procs, up = {}, {}
    mock = start([work / "mock", str(MOCK)], cli)
    try:
        for n, (key, cmd, env, port, *_) in list(cs.items()):
            if key is None or key in procs:
                continue
            procs[key] = start(cmd, srv, env, open(work / f"{key.replace('/', '_')}.log", "w"))
            up[key] = wait_ready(port, procs[key])
            if not up[key]:
                print(f"! {n} did not start; see {key}.log", file=sys.stderr)
        cs = {n: c for n, c in cs.items() if c[0] is None or up[c[0]]}
        files = {}
        for n, c in cs.items():
            for s, (kind, stream, shape, *_) in scen.items():
                f = work / f"body-{c[4]}-{c[5]}{kind}-{stream}-{shape}.json"
                f.write_bytes(bodies.make(kind, c[4], c[5] + SHAPES[shape], stream))
                files[n, s] = f
        res = {}
        with open(work / "results.jsonl", "a") as out:
            for rnd in range(a.rounds):
                for s, (kind, stream, shape, conns, _) in scen.items():
                    for n, (key, _, _, port, proto, _, *head) in cs.items():
                        path = "/v1/messages" if proto == "anthropic" else "/v1/chat/completions"
                        cmd = [work / "load", port, path, files[n, s], conns, a.seconds, WARM]
                        cmd += head + (["anthropic-version: 2023-06-01"] if proto == "anthropic" else [])
                        u0 = usage(procs[key].pid) if key else (0, 0)
                        pre = [] if cli is None else ["taskset", "-c", cli]
                        p = subprocess.run(
                            pre + [str(x) for x in cmd], capture_output=True, text=True, timeout=60 + a.seconds
                        )
                        r = json.loads(p.stdout or '{"ok":0,"bad":-1,"connerr":0,"rps":0}')
                        u1 = usage(procs[key].pid) if key else (0, 0)
                        settle(procs[key].pid if key else mock.pid)
                        done = r["ok"] * (a.seconds + WARM) / a.seconds
                        r.update(
                            contender=n,
                            scenario=s,
                            round=rnd,
                            cpu_us=round((u1[0] - u0[0]) / done * 1e6, 1) if done else None,
                            cpu_util=round((u1[0] - u0[0]) / (a.seconds + WARM), 2),
                            rss=round(u1[1], 1),
                            load1=os.getloadavg()[0],
                        )
                        out.write(json.dumps(r) + "\n")
                        out.flush()
                        res.setdefault((s, n), []).append(r)
                        if r["bad"] or r["connerr"] or not r["ok"]:
                            print(f"! {n} {s}: ok {r['ok']} bad {r['bad']} connerr {r['connerr']} {r.get('badmsg')}")
        report(res, scen, cs, a.base.split(","))
    finally:
        for p in [*procs.values(), mock]:
            try:
                os.killpg(p.pid, signal.SIGTERM)
            except OSError:
                pass
        for p in [*procs.values(), mock]:
            try:
                p.wait(5)
            except subprocess.TimeoutExpired:
                os.killpg(p.pid, signal.SIGKILL)


def report(res, scen, cs, bases):
    def med(s, n, k):
        v = [r[k] for r in res.get((s, n), ()) if r["ok"] and r.get(k) is not None]
        return st.median(v) if v else None

    for s, (kind, stream, shape, conns, fom) in scen.items():
        print(
            f"\n## {s}: {kind} body, {'stream' if stream else 'buffered'}, timing {SHAPES[shape]}, {conns} connections"
        )
        have = [b for b in bases if (s, b) in res]
        print(
            f"{'contender':26s} {'req/s':>8s} {'range':>13s} {'p50 us':>8s} {'p99 us':>8s} {'ttfc50':>8s} {'ttfc99':>8s} {'gap99':>7s} "
            f"{'+p50':>7s} {'+ttfc':>7s} {'cpu us':>8s} {'util':>5s} {'MiB':>6s} {'ev':>5s}  "
            + " ".join(f"{'x ' + b:>16s}" for b in have)
            + "  capacity per CPU second x "
            + ",".join(have[1:])
        )
        for n in cs:
            if med(s, n, "rps") is None:
                continue
            g = lambda k, n=n: med(s, n, k) or 0  # noqa: E731
            base = lambda k: med(s, "direct", k) or 0  # noqa: E731
            rates = [r["rps"] for r in res[s, n]]
            # a ratio is taken round by round, then the median of those
            rat = []
            for b in have:
                if fom == "rps":
                    v = [x["rps"] / y["rps"] for x, y in zip(res[s, n], res[s, b]) if y["rps"]]
                else:
                    k = "lat_p50" if fom == "lat" else "ttfc_p50"
                    v = [x[k] / y[k] for x, y in zip(res[s, n], res[s, b]) if y.get(k) and x.get(k)]
                rat.append(f"{st.median(v):16.2f}" if v else " " * 16)
            cpu = [
                f"{med(s, b, 'cpu_us') / g('cpu_us'):7.2f}" if g("cpu_us") and med(s, b, "cpu_us") else " " * 7
                for b in have
                if b != "direct"
            ]
            print(
                f"{n:26s} {g('rps'):8.0f} {min(rates):6.0f}-{max(rates):<6.0f} {g('lat_p50'):8.0f} {g('lat_p99'):8.0f} "
                f"{g('ttfc_p50'):8.0f} {g('ttfc_p99'):8.0f} {g('gap_p99'):7.0f} {g('lat_p50') - base('lat_p50'):7.0f} "
                f"{g('ttfc_p50') - base('ttfc_p50'):7.0f} {g('cpu_us'):8.0f} {g('cpu_util'):5.2f} {g('rss'):6.0f} "
                f"{g('events_per_resp'):5.1f}  " + " ".join(rat) + "  cpu " + " ".join(cpu)
            )


if __name__ == "__main__":
    main()
