import { DAY_MS } from '../../../core/time/time'
import type { Problem } from '../../backend'
import type { Host } from '../host'
import type { Image } from '../sdk/api'

/** Last days of patches of AWS's images, by the system in their names (support policy of the Deep Learning AMIs, looked up in November 2026). */
const PATCHED_UNTIL: readonly [RegExp, string, string][] = [
  [/ubuntu[ -]?20\.04/i, 'Ubuntu 20.04', '2025-05-31'],
  [/ubuntu[ -]?22\.04/i, 'Ubuntu 22.04', '2027-04-30'],
  [/ubuntu[ -]?24\.04/i, 'Ubuntu 24.04', '2029-04-30'],
  [/amazon[ -]linux[ -]2\b/i, 'Amazon Linux 2', '2026-06-30'],
  [/amazon[ -]linux[ -]2023/i, 'Amazon Linux 2023', '2029-06-30'],
]

/** Early enough to test jobs with another image. */
const AHEAD_MS = 180 * DAY_MS

/** Checks that the configured image exists, and for how long it is maintained. */
export async function checkImage({ market, config, deps }: Host, signal: AbortSignal): Promise<Problem[]> {
  const image = await market.image('x86_64', undefined, signal)
  return image === undefined ? [] : imageProblems(image, { setting: config.image, nowMs: deps.clock() })
}

/** Problems of an image whose maintenance has ended or ends within half a year; none if its names tell nothing. @internal Tests judge images. */
export function imageProblems(
  { id, name = '', deprecatedAtMs }: Pick<Image, 'id' | 'name' | 'deprecatedAtMs'>,
  { setting, nowMs }: { setting: string; nowMs: number },
): Problem[] {
  const found = PATCHED_UNTIL.find(([pattern]) => pattern.test(`${name} ${setting}`))
  const problems: Problem[] = []
  if (found !== undefined) {
    const [, system, day] = found
    const endsAtMs = Date.parse(day)
    if (endsAtMs - nowMs < AHEAD_MS)
      problems.push(
        warning(`the image of the machines has ${system}, whose patches ${verb(endsAtMs, nowMs)} ${day}`),
      )
  }
  // A parameter names the newest image, so only an image that the setting pins grows old.
  if (setting === id && deprecatedAtMs !== undefined && deprecatedAtMs - nowMs < AHEAD_MS)
    problems.push(
      warning(
        `the image ${id} ${deprecatedAtMs < nowMs ? 'is deprecated since' : 'will be deprecated on'} ${new Date(deprecatedAtMs).toISOString().slice(0, 10)}`,
      ),
    )
  return problems
}

const verb = (endsAtMs: number, nowMs: number): string => (endsAtMs < nowMs ? 'ended on' : 'end on')

const warning = (message: string): Problem => ({
  severity: 'warning',
  message,
  remedy:
    'Set CRUCIBLE_EC2_IMAGE to a newer image, or leave it out for the default; jobs that are running keep theirs.',
})
