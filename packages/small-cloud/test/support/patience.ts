/** The patience factor, which the environment of the tests sets: by how much things may take longer than on an idle machine. */
const PATIENCE = Number(process.env['CRUCIBLE_TEST_PATIENCE'] ?? 1)

/** The longest that something may take here that takes at most this long on an idle machine. */
export function patient(limitMs: number): number {
  return limitMs * PATIENCE
}
