import type { FindOutcome } from '../../core/activities'
import type { MachineHandle, OwnedResource } from '../../core/handle'
import type { Observation } from '../../core/observation'
import type { Ages } from '../../core/time/ages'
import { formatInstant, MINUTE_MS } from '../../core/time/time'
import type { Host } from './host'
import { scan, scanAll, scanLeniently, type MachineView } from './scan'
import { handleOf } from './records'

/** Time after which a launch that has not started its runner counts as dead; its order, sent again, still starts it. */
const START_WITHIN_MS = MINUTE_MS

export async function observe(host: Host, handles: MachineHandle[]): Promise<Observation[]> {
  const ids = handles.map((handle) => handle.id)
  const views = await scanLeniently(host, ids)
  return views.map((view) => observationOf(view, host.ages))
}

function observationOf(view: MachineView | 'damaged' | undefined, ages: Ages): Observation {
  // Silence is not death: the runner reports the state of such a machine through the store.
  if (view === 'damaged') return { state: 'running', detail: 'its record is damaged; see `check`' }
  if (view === undefined) return { state: 'gone', cause: 'unknown', detail: 'no such machine on this host' }
  const notice = view.noticeAtMs === undefined ? {} : { noticeAtMs: view.noticeAtMs }
  switch (view.state) {
    case 'running':
    case 'stopping':
      return { state: view.state, ...notice }
    case 'gone':
      return { state: 'gone', ...notice, ...view.ended }
    case 'unstarted': {
      const { launchedAtMs } = view.machine
      if (ages.of(view.machine.owner.attemptId, launchedAtMs) < START_WITHIN_MS) return { state: 'pending' }
      return {
        state: 'gone',
        cause: 'failed-to-start',
        endedAtMs: launchedAtMs,
        detail: 'its launch was interrupted',
      }
    }
  }
}

/** A directory is a machine even before its runner starts: it occupies its slots. An ended one does not count. */
export async function find(host: Host, attemptId: string): Promise<FindOutcome> {
  const [view] = await scan(host, [attemptId])
  const { deployment } = host.deps
  if (view === undefined || view.state === 'gone') return { kind: 'absent' }
  if (deployment !== undefined && view.machine.owner.deployment !== deployment) return { kind: 'absent' }
  return { kind: 'found', handles: [handleOf(view.machine)] }
}

/** Lists every machine of a deployment with a directory, ended or not: a directory occupies space until it is removed. */
export async function list(host: Host, deployment: string): Promise<OwnedResource[]> {
  const views = await scanAll(host)
  return views
    .filter((view) => view.machine.owner.deployment === deployment)
    .map(({ machine, state, ended }) => ({
      handle: handleOf(machine),
      owner: machine.owner,
      createdAtMs: machine.launchedAtMs,
      description:
        ended === undefined
          ? `${state} since ${formatInstant(machine.launchedAtMs)}`
          : `ended ${formatInstant(ended.endedAtMs)}, its directory remains`,
    }))
}
