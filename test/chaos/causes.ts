import type { AttemptEnd } from '../../core/job/ledger'
import type { Fault } from './plan'
import type { Struck } from './strikes'

interface Circumstances {
  job: number
  attempt: number
  struck: readonly Struck[]
  isLeaseShort: boolean
  hasBudget: boolean
}

/** Trouble of our own, which may cost a machine its lease, where that is short, and nothing else. */
const OUR_OWN: readonly Fault[] = [
  'kill-orchestrator',
  'kill-backend-worker',
  'kill-server',
  'server-outage',
  'blackout',
  'full-store',
  'missing-store',
  'disturb-provider',
]

/**
 * Whether an attempt that ended as it did was struck by something that ends attempts so. A fault of the control plane, of the
 * server, of the provider's answers or of the store explains no end: a healthy job is never killed by our own trouble.
 */
export function causeOf(end: AttemptEnd, at: Circumstances): boolean {
  const mine = at.struck.filter(
    ({ hasLanded, job, attempt }) => hasLanded && job === at.job && attempt === at.attempt,
  )
  const anywhere = at.struck.filter(({ hasLanded }) => hasLanded)
  const has = (among: readonly Struck[], ...faults: Fault[]): boolean =>
    among.some(({ fault }) => faults.includes(fault))
  const lostRunner = mine.some(({ fault, process }) => fault === 'kill-runner' && process !== 'guard')
  if (end.kind === 'succeeded') return true
  if (end.kind === 'stopped') {
    if (end.by === 'lease') return at.isLeaseShort && has(anywhere, ...OUR_OWN)
    if (end.by === 'superseded') return has(mine, 'terminate-child')
    return end.by === 'budget' && at.hasBudget
  }
  const { class: failureClass, code } = end.failure
  if (failureClass === 'interrupted')
    return (
      lostRunner ||
      has(mine, 'kill-machine', 'notice', 'terminate-child') ||
      // A runner without any room cannot even begin.
      has(anywhere, 'full-machines')
    )
  if (failureClass === 'workload')
    return (
      has(mine, 'kill-workload') ||
      mine.some(({ process }) => process === 'leash') ||
      (code === 'disk-full' && has(anywhere, 'full-machines'))
    )
  const isRefusal = failureClass === 'capacity' || failureClass === 'transient'
  return isRefusal && !end.isLaunched && has(anywhere, 'disturb-provider', 'full-machines')
}
