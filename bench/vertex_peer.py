"""What bench/graphs and bench/vertex run in the peer's Python: R-MAT graphs as text, and programs of
SuiteSparse:GraphBLAS and igraph."""

# Chakrabarti, Zhan and Faloutsos, "R-MAT", SDM 2004; a = .57, b = c = .19.
MAKE = r"""
import sys, numpy as np
scale, edges, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
m, rng = edges << scale, np.random.default_rng(1)
a = np.zeros((2, m), dtype=np.int64)
for bit in range(scale):
    u = rng.random(m)
    a[0] = a[0] * 2 + (u >= .76)
    a[1] = a[1] * 2 + (((u >= .57) & (u < .76)) | (u >= .95))
with open(path, "w") as file:
    for at in range(0, m, 1 << 20):
        piece = a[:, at:at + (1 << 20)].tolist()
        file.write("\n".join(map("%d %d".__mod__, zip(*piece))) + "\n")
"""

# Says "ready SOURCE" when the graph is in memory, or else why it cannot; then answers lines. Matrices are made before, as Plait's
# views of the graph are made with the reading of the file.
PEER = r"""
import sys, time
kind, path = sys.argv[1], sys.argv[2]
try:
    import numpy as np
    if kind == "igraph": import igraph
    else:
        import graphblas as gb
        from graphblas import Matrix, Vector, semiring, binary, monoid
except ImportError as error:
    print(error, flush=True)
    sys.exit(0)
edges = np.fromfile(path, np.int64, sep=" ").reshape(-1, 2)
ids, index = np.unique(edges, return_inverse=True)
index = index.reshape(edges.shape)
n = len(ids)
degree = np.bincount(index[:, 0], minlength=n)
source = int(np.argmax(degree))
calls = {}
if kind == "igraph":
    g = igraph.Graph(n=n, edges=index, directed=True)
    s = g.as_undirected(mode="collapse").simplify()
    calls = {"pagerank": lambda: g.pagerank(damping=.85), "components": lambda: g.connected_components(mode="weak"),
             "bfs": lambda: g.distances(source=source, mode="out"), "triangles": lambda: s.transitivity_local_undirected(mode="zero")}
else:
    gb.ss.config["nthreads"] = 2
    G = Matrix.from_coo(index[:, 0], index[:, 1], np.ones(len(edges)), nrows=n, ncols=n, dup_op=binary.plus)
    R = Matrix.from_coo(index[:, 1], index[:, 0], np.ones(len(edges)), nrows=n, ncols=n, dup_op=binary.plus)
    S = G.ewise_add(R, binary.first).new()
    place = np.empty(n, np.int64)
    rows, columns, _ = S.to_coo(values=False)
    S = Matrix.from_coo(rows, columns, np.int64(1), nrows=n, ncols=n)
    place[np.argsort(np.bincount(rows, minlength=n), kind="stable")] = np.arange(n)
    u, v = place[rows], place[columns]
    L = Matrix.from_coo(u[u > v], v[u > v], True, nrows=n, ncols=n)
    U = Matrix.from_coo(u[u < v], v[u < v], True, nrows=n, ncols=n)
    out_degree = Vector.from_dense(np.maximum(degree, 1).astype(np.float64))
    def pagerank():
        r = Vector.from_scalar(1 / n, n, dtype=float)
        for _ in range(30):
            told = r.ewise_mult(out_degree, binary.truediv).new()
            told = told.apply(binary.times, right=.85).new()
            next = Vector.from_scalar(.15 / n, n, dtype=float)
            next(binary.plus) << R.mxv(told, semiring.plus_second)
            r = next
        return r.to_dense()
    def bfs():
        seen = Vector(int, n); seen[source] = 0
        q = Vector(bool, n); q[source] = True
        level = 0
        while q.nvals:
            level += 1
            q(~seen.S, replace=True) << q.vxm(G, semiring.any_pair)
            seen(q.S) << level
        return seen
    # FastSV (Zhang, Azad and Hu, SIAM PP 2020), as LAGraph has it, without its sampling.
    def components():
        f = np.arange(n); grand = f.copy()
        while True:
            least = S.mxv(Vector.from_dense(grand), semiring.min_second).new().to_dense(fill_value=n).astype(np.int64)
            hooked = f.copy()
            np.minimum.at(hooked, f, least)
            hooked = np.minimum(np.minimum(hooked, least), grand)
            f, before = hooked, grand
            grand = f[f]
            if (grand == before).all(): return f
    def triangles():
        T = Matrix(gb.dtypes.INT64, n, n)
        T(L.S) << L.mxm(U.T, semiring.plus_pair)
        return T.reduce_scalar(monoid.plus).new().value
    calls = {"pagerank": pagerank, "bfs": bfs, "components": components, "triangles": triangles}
print("ready", ids[source], flush=True)
for line in sys.stdin:
    call = calls.get(line.strip())
    if call is None: print("none", flush=True); continue
    begun = time.monotonic(); call(); print(time.monotonic() - begun, flush=True)
"""
