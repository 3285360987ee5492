/** Programs under real libraries, which not every machine has. */
import { spawnSync } from 'node:child_process'

export interface NeedsLibraries {
  /** Python that fails where a library is missing. */
  check: string
}

/** What several libraries read when they are loaded. */
const ENVIRONMENT = { KERAS_BACKEND: 'jax', JAX_PLATFORMS: 'cpu' }

/** Why a program cannot be run with a Python, if it cannot. */
export function obstacleOf({ check }: NeedsLibraries, python: string): string | undefined {
  const env = { ...process.env, ...ENVIRONMENT }
  const { status, stderr, error } = spawnSync(python, ['-c', check], { encoding: 'utf8', env })
  return status === 0 ? undefined : (error?.message ?? stderr.trim().split('\n').at(-1)!)
}

/** The Pythons of a machine on which tests may find libraries. */
const PYTHONS: readonly string[] = [
  process.env['CRUCIBLE_TUTORIALS_PYTHON'] ?? [],
  'python3',
  '/usr/bin/python3',
].flat()

/** The first Python that has what a program needs, or why the first of all has not. */
export function pythonFor(
  one: NeedsLibraries,
  pythons: readonly string[] = PYTHONS,
): { python: string } | { obstacle: string } {
  const obstacles = pythons.map((python) => ({ python, obstacle: obstacleOf(one, python) }))
  const usable = obstacles.find(({ obstacle }) => obstacle === undefined)
  return usable ?? { obstacle: obstacles[0]!.obstacle! }
}
