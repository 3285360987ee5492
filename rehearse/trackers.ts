import { trackerName, type TrackedRun } from '../core/beat-parts'
import type { RehearsedLife } from './seen'
import { countOf } from './words'

/** The runs at each tracker, as the last attempt that knew any has reported them. */
function runsOf({ attempts }: RehearsedLife): Map<string, TrackedRun[]> {
  const runs = attempts.findLast(({ trackers = [] }) => trackers.length > 0)?.trackers ?? []
  const byKind = new Map<string, TrackedRun[]>()
  for (const run of runs) byKind.set(run.kind, [...(byKind.get(run.kind) ?? []), run])
  return byKind
}

/** For each tracker that the program uses, whether interruptions gave it more runs than an undisturbed training has. */
export function compareRuns(
  undisturbed: RehearsedLife,
  interrupted: RehearsedLife,
): { isSame: boolean; text: string } | undefined {
  const [before, after] = [runsOf(undisturbed), runsOf(interrupted)]
  if (after.size === 0) return undefined
  const parts = [...after].map(([kind, runs]) => {
    const expected = before.get(kind)?.length ?? 1
    const isSame = runs.length <= expected
    const counted = countOf(runs.length, `${trackerName(kind)} run`)
    return { isSame, text: isSame ? counted : `${counted} instead of ${expected}` }
  })
  return { isSame: parts.every(({ isSame }) => isSame), text: parts.map(({ text }) => text).join(', ') }
}
