"""The density of rules that act on single entries, for which it is the only theory."""

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
import pytest
from scipy import integrate, optimize, stats

import inopca_jax as ino
from inopca_jax._densities.fluxes import (
    Coefficients,
    FoldedCells,
    PenaltyOnCells,
    scharfetter_gummel,
)
from inopca_jax._densities.penalised import centred_grid

from .cases import config, distance, sparing
from .test_penalised import Decaying, Square

SPARSE = ino.Sparse(rho=0.05)


def sparse_config(beta, rule=ino.Oja, *, omega=1.0, q0=0.5, ts=(0.0, 2.0), tau=0.5, p=1e4):
    rule = ino.Penalised(rule(tau), ino.SoftThreshold(beta))
    start = ino.WarmStart(q0=q0)
    return config(rule, p=int(p), omega=omega, spike=SPARSE, start=start, ts=ts)


@pytest.mark.parametrize("cells", [16, 99, 400])
def test_zero_is_a_face_of_the_cells_and_the_domain_is_covered(cells):
    for low, high in ((-3.0, 7.0), (-0.01, 5.0), (-8.0, 0.3)):
        grid = centred_grid(cells, (jnp.asarray(low), jnp.asarray(high)), ())
        faces = np.append(grid.x - grid.width / 2, grid.x[-1] + grid.width / 2)
        assert np.abs(faces).min() < 1e-4 * float(grid.width)
        assert faces[0] <= low + 1e-5
        assert faces[-1] >= high - 1e-5
        assert len(grid.x) == cells


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("cells", [40, 41])
def test_the_discrete_steady_state_is_exact_across_the_kink(cells):
    # dx = (.7 xi - .4 x - .5 sign x) dt + sqrt(.6) dB rests at exp{(.7 xi x - .2 x^2
    # - .5 |x|)/.3}.
    grid = centred_grid(cells, (jnp.asarray(-6.0), jnp.asarray(8.0)), ())
    line, xi = FoldedCells(grid.x, grid.width), np.array([-1.0, 0.3, 2.0])
    phi = PenaltyOnCells(ino.SoftThreshold(0.5), line)
    a = Coefficients(*map(jnp.asarray, (0.7, -0.4, 0.3)))
    rates = scharfetter_gummel(a, line, jnp.asarray(xi), phi)
    x = np.asarray(grid.x)[:, None]
    steady = np.exp((0.7 * xi * x - 0.2 * x**2 - 0.5 * np.abs(x)) / 0.3)
    steady = steady / steady.sum(0)
    flow = line.unfold(rates.time_derivative(line.fold(jnp.asarray(steady))))
    assert np.abs(flow).max() < 1e-13 * float(jnp.max(rates.total_outflow()))
    without = scharfetter_gummel(a, line, jnp.asarray(xi))
    flow = line.unfold(without.time_derivative(line.fold(jnp.asarray(steady))))
    assert np.abs(flow).max() > 1e-3


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("rule", sparing([ino.InoPCA, ino.Oja]))
def test_a_linear_penalty_without_its_name_has_the_density_of_a_decay(rule):
    # The one takes the moments of phi from the density, the other a closed equation.
    make = lambda penalty: config(
        ino.Penalised(rule(0.5), penalty), p=10**12, ts=[0.0, 0.5, 4.0]
    )
    found = ino.density(make(Square(0.2)), solver=ino.FokkerPlanck(nodes=8))
    path = ino.mean_field(make(ino.Ridge(0.2)))
    assert np.allclose(found.q, path.q, rtol=0, atol=3e-4)
    assert np.allclose(found.lam, path.lam, rtol=3e-4)
    slope = np.asarray(path.q * path.lam)[:, None, None] * np.asarray(found.nodes)[:, None]
    std = np.asarray(path.lam * np.sqrt(1 - path.q**2))[:, None, None]
    exact = stats.norm.pdf(found.x, slope, std)
    error = np.einsum("k,tkx->t", found.weights, np.abs(found.pdf - exact)) * found.width
    assert error.max() < 2e-3
    assert float(found.pdf.min()) >= 0
    assert np.allclose(found.moments(0), 1, rtol=0, atol=1e-12)


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_a_ridge_has_the_density_of_the_rule_with_that_decay():
    make = lambda rule: config(rule, ts=[0.0, 0.5, 4.0])
    ridge = ino.density(make(ino.Penalised(ino.InoPCA(0.5), ino.Ridge(0.2))))
    other = ino.density(make(Decaying(ino.InoPCA(0.5), 0.2)))
    assert np.allclose(distance(ridge, other), 0, atol=1e-10)


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    ("rule", "omega", "beta"),
    sparing([(ino.InoPCA, 1.0, 0.3), (ino.Oja, 1.0, 0.3), (ino.InoPCA, 2.0, 0.6)]),
)
def test_the_density_is_the_limit_of_the_p_dimensional_algorithm(rule, omega, beta):
    problem = sparse_config(beta, rule, omega=omega, p=1000, ts=[0.0, 1.0, 3.0])
    engine = ino.Stream(snapshots=True, dtype="float32")
    runs = ino.simulate(problem, key=jr.key(3), trials=20, engine=engine)
    pdf = ino.density(problem)
    for name in ("q", "lam"):
        found = np.asarray(getattr(runs, name))
        gap = found.mean(0) - np.asarray(getattr(pdf, name))
        std = found.std(0, ddof=1) / np.sqrt(20)
        # The limit is off by O(1/p), and a projected norm by the width of the cells.
        assert np.all(np.abs(gap) < 4 * std + 2 / 1000)
    x, xi = np.asarray(runs.x)[:, -1], np.asarray(runs.xi)[:, -1]
    edges = pdf.x + pdf.width / 2
    for k, on_support in enumerate((False, True)):
        cdf = np.cumsum(pdf.pdf[-1, k]) * float(pdf.width)
        chosen = x[0][(xi[0] > 1) == on_support]
        law = lambda v, cdf=cdf: np.interp(v, edges, cdf)
        assert stats.kstest(chosen, law).pvalue > 1e-3
    # Without the penalty the limit is another.
    plain = ino.mean_field(config(rule(0.5), omega=omega, ts=[0.0, 1.0, 3.0]))
    assert abs(float(plain.q[-1] - pdf.q[-1])) > 0.02


def orders(errors):
    return np.log2(np.asarray(errors[:-1]) / np.asarray(errors[1:]))


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
@pytest.mark.filterwarnings("ignore:At t = ")
@pytest.mark.parametrize("rule", [ino.Oja, ino.InoPCA])
def test_the_solver_is_of_second_order_in_cells_and_steps(rule):
    problem = sparse_config(0.3, rule, ts=[0.0, 3.0])

    def end(cells, dt):
        solver = ino.FokkerPlanck(cells=cells, dt=dt, domain=(-12.0, 16.0))
        path = ino.overlap_path(problem, solver=solver)
        return np.array([path.q[-1], path.lam[-1]])

    paths = [end(cells, 0.02) for cells in (200, 400, 800, 1600)]
    changes = np.abs(np.diff(paths, axis=0))
    assert np.all((orders(changes) > 1.9) & (orders(changes) < 2.1))
    paths = [end(400, dt) for dt in (0.1, 0.05, 0.025, 0.0125)]
    changes = np.abs(np.diff(paths, axis=0))[:, 0]
    assert orders(changes)[-1] > 1.8


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("rule", sparing([ino.Oja, ino.InoPCA]))
def test_the_steady_formula_solves_its_equations(rule):
    # By scipy's quadrature and root finder, from the equation of THEORY2 E.
    tau, omega, beta, rho = 0.5, 1.0, 0.3, 0.05
    branches = ino.steady_branches(sparse_config(beta, rule))
    assert branches.stable.tolist() == [True]
    q, lam = float(branches.q[0]), float(branches.lam[0])

    def gaps(unknowns):
        q, other = unknowns
        lam = 1.0 if rule is ino.Oja else other
        gain, s2 = tau / (1.0 if rule is ino.Oja else lam), omega * q**2 + 1
        spread = lam**2 * gain**2 * s2 / 2
        back = other if rule is ino.Oja else gain - tau

        def moments(xi):
            log = lambda x: (gain * omega * q * lam * xi * x + back * x**2 / 2
                             - beta * np.abs(x)) / spread  # fmt: skip
            top = max(log(x) for x in np.linspace(-20, 40, 6001))
            one = lambda k: integrate.quad(
                lambda x: x**k * np.exp(log(x) - top), -40, 60, points=[0, 5], limit=400
            )[0]
            mass = one(0)
            return one(1) / mass, one(2) / mass

        (_, off), (first, on) = moments(0.0), moments(rho**-0.5)
        return [
            rho**0.5 * first / lam - q,
            ((1 - rho) * off + rho * on) / lam**2 - 1,
        ]

    other = -0.3 if rule is ino.Oja else lam
    solution = optimize.root(gaps, [q, other], tol=1e-12)
    assert solution.success
    assert abs(solution.x[0] - q) < 1e-7
    if rule is ino.InoPCA:
        assert abs(solution.x[1] - lam) < 1e-7


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(("beta", "rule"), [(0.3, ino.Oja), (0.3, ino.InoPCA)])
def test_the_steady_formula_is_the_limit_of_the_density(beta, rule):
    problem = sparse_config(beta, rule, ts=[0.0, 150.0])
    branches = ino.steady_branches(problem)
    ends = []
    for cells in (400, 800):
        solver = ino.FokkerPlanck(cells=cells, dt=0.1, domain=(-12.0, 16.0))
        path = ino.overlap_path(problem, solver=solver)
        ends.append(np.array([path.q[-1], path.lam[-1]]))
    extrapolated = ends[1] + (ends[1] - ends[0]) / 3
    assert np.allclose(extrapolated, (branches.q[0], branches.lam[0]), rtol=0, atol=1e-6)


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_without_a_penalty_the_branches_are_the_closed_form():
    for rule in (ino.Oja, ino.InoPCA, ino.Cubic):
        for omega in (0.1, 1.0):
            branches = ino.steady_branches(sparse_config(0.0, rule, omega=omega))
            q, lam = ino.steady_state(config(rule(0.5), omega=omega))
            assert np.allclose(branches.q[-1], q, atol=1e-9)
            assert np.allclose(branches.lam[-1], lam, atol=1e-9)
            assert branches.stable.tolist() == ([False, True] if omega > 0.3 else [True])


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("q0", [0.5, -0.5, 0.05])
def test_below_the_transition_the_start_chooses_the_branch(q0):
    problem = sparse_config(0.15, omega=0.24, q0=q0)
    branches = ino.steady_branches(problem)
    assert branches.stable.tolist() == [True, False, True]
    assert 0.05 < branches.q[1] < 0.5
    expected = np.sign(q0) * branches.q[-1] if abs(q0) == 0.5 else 0.0
    steady = ino.steady_density(problem)
    assert np.allclose(steady.q, expected, atol=1e-3)
    assert np.allclose(steady.moment(0), 1, atol=2e-3)


def test_tails_that_run_away_are_named_with_numbers():
    # At q = .1 and omega = .2 beta E|x| = .478 exceeds tau omega q^2 + tau^2 s2/2 = .126.
    problem = sparse_config(0.6, omega=0.2, q0=0.1, ts=[0.0, 30.0])
    message = r"entries in the far tails run away.*at worst by 0\.4\d\d? to 0\.126"
    error = r"edge came to hold.*the tails run away"
    with pytest.warns(UserWarning, match=message), pytest.raises(ValueError, match=error):
        ino.density(problem)
    with pytest.raises(ValueError, match=r"no stable steady state at omega = 0\.2"):
        ino.steady_density(problem)


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
def test_the_gradient_of_the_last_overlap_agrees_with_differences():
    def end(numbers):
        problem = sparse_config(numbers[0], ino.InoPCA, tau=numbers[1], ts=[0.0, 5.0])
        return ino.overlap_path(problem, solver=ino.FokkerPlanck(dt=0.1)).q[-1]

    at, step = jnp.asarray([0.3, 0.5]), 1e-4
    gradient = jax.grad(end)(at)
    for i in (0, 1):
        ends = [end(at.at[i].add(sign * step)) for sign in (1, -1)]
        assert abs((ends[0] - ends[1]) / (2 * step) - gradient[i]) < 1e-5
        assert abs(gradient[i]) > 0.01


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (ino.steady_branches, "rule = InoPCA is not allowed.*steady_state"),
        (
            lambda c: ino.steady_branches(sparse_config(0.3, tau=ino.Harmonic(1.0))),
            "tau = Harmonic is not allowed",
        ),
        (
            lambda c: ino.density(sparse_config(0.3), solver=ino.MethodOfLines()),
            r"is not allowed with MethodOfLines \(use FokkerPlanck\)",
        ),
        (
            lambda c: jax.jit(lambda b: ino.steady_branches(sparse_config(b)).q)(0.3),
            "config is traced.*overlap_path",
        ),
    ],
)
def test_what_has_no_steady_branches_or_solver_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(config())
