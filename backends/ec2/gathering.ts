import { gathered } from '../gather'
import { FILTER_VALUES_MAX, type Ec2Api, type Machine, type MachinesApi } from './sdk/api'
import { TAGS } from './tags'

/** Calls of one kind in progress at once; what is asked meanwhile goes together into the next one. */
const CALLS_MAX = 4
/** EC2 takes 1,000 machines in one call and recommends smaller batches. */
const ENDED_AT_ONCE_MAX = 100

/**
 * Gathers the calls about single machines, so that hundreds of jobs that end at one moment need a few calls of the rate that EC2 grants
 * an account.
 */
export function inGroups(api: Ec2Api): Ec2Api {
  const { machines } = api
  const byId = gathered<string, Machine | undefined>({
    ask: async (ids, signal) => {
      const found = new Map((await machines.byId([...new Set(ids)], signal)).map((one) => [one.id, one]))
      return ids.map((id) => found.get(id))
    },
    callsMax: CALLS_MAX,
    keysMax: FILTER_VALUES_MAX,
  })
  const byAttempt = gathered<string, Machine[]>({
    ask: async (values, signal) => {
      const found = await machines.byTag({ name: TAGS.attempt, values: [...new Set(values)] }, signal)
      return values.map((value) => found.filter(({ tags }) => tags[TAGS.attempt] === value))
    },
    callsMax: CALLS_MAX,
    keysMax: FILTER_VALUES_MAX,
  })
  const ending = { politely: endingOf(machines, false), abruptly: endingOf(machines, true) }
  return {
    ...api,
    machines: {
      ...machines,
      byId: async (ids, signal) => {
        const found = await Promise.all(ids.map((id) => byId(id, signal)))
        return found.filter((one) => one !== undefined)
      },
      byTag: async ({ name, values }, signal) =>
        name === TAGS.attempt
          ? (await Promise.all(values.map((value) => byAttempt(value, signal)))).flat()
          : machines.byTag({ name, values }, signal),
      terminate: async (ids, signal, how) => {
        const end = how?.isAbrupt === true ? ending.abruptly : ending.politely
        const failed = (await Promise.all(ids.map((id) => end(id, signal)))).find((one) => one !== undefined)
        if (failed !== undefined) throw failed
      },
    },
  }
}

/** Answers with the error of each machine that EC2 did not end. */
function endingOf(
  machines: MachinesApi,
  isAbrupt: boolean,
): (id: string, signal: AbortSignal) => Promise<Error | undefined> {
  return gathered<string, Error | undefined>({
    ask: async (ids, signal) => {
      const end = (some: string[]): Promise<Error | undefined> =>
        machines.terminate(some, signal, { isAbrupt }).then(
          () => undefined,
          (error: Error) => error,
        )
      const failed = await end([...new Set(ids)])
      // One machine that cannot be ended fails the call for all: the others are ended one by one.
      return failed === undefined || ids.length === 1
        ? ids.map(() => failed)
        : Promise.all(ids.map((id) => end([id])))
    },
    callsMax: CALLS_MAX,
    keysMax: ENDED_AT_ONCE_MAX,
  })
}
