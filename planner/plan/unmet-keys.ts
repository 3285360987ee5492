import { OPTIONAL_KEYS, type Capabilities, type OptionalKey } from '../../core/capabilities'
import type { JobSpec } from '../../core/job/job'

interface Rule {
  isSet(spec: JobSpec): boolean
  /** Whether a job that sets it does not run where it cannot be followed; otherwise the plan names it as a risk. */
  isRequired: boolean
}

const RULES: Readonly<Record<OptionalKey, Rule>> = {
  disk_throughput: {
    isSet: ({ resources }) => resources.diskMibPerSecond !== undefined,
    isRequired: true,
  },
  disk_iops: { isSet: ({ resources }) => resources.diskIops !== undefined, isRequired: true },
  shm: { isSet: ({ resources }) => resources.shmGiB !== undefined, isRequired: false },
  tags: { isSet: ({ tags }) => tags !== undefined, isRequired: false },
}

/** The first key of the job that a backend cannot follow and without which the job must not run there, in words. */
export function whyUnmet(spec: JobSpec, capabilities: Capabilities): string | undefined {
  const [key] = unmetKeys(spec, capabilities, true)
  return key === undefined ? undefined : `\`${key}\` cannot be set there`
}

/** Keys of the job that a backend does not follow, though the job may run there, in words. */
export function unmetRisks(spec: JobSpec, capabilities: Capabilities): string[] {
  return unmetKeys(spec, capabilities, false).map((key) => `\`${key}\` has no effect on its machine`)
}

function unmetKeys(spec: JobSpec, { ignores = [] }: Capabilities, isRequired: boolean): OptionalKey[] {
  return OPTIONAL_KEYS.filter(
    (key) => ignores.includes(key) && RULES[key].isRequired === isRequired && RULES[key].isSet(spec),
  )
}
