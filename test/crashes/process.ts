import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Where in a call its process dies. `before`: nothing was sent. `in`: it is on its way, has its effect, and no process is left to hear the
 * answer. `after`: the answer is there, and nothing was done with it.
 */
export const MOMENTS = ['before', 'in', 'after'] as const
export type Moment = (typeof MOMENTS)[number]

/** The death that a call meets. */
export interface Death {
  moment: Moment
  /** How long after the death a request that is on its way has its effect. */
  lateMs: number
}

export type Activities = Readonly<Record<string, (input: never) => Promise<unknown>>>

interface Caller {
  process: OurProcess
  activity: string
}

const callers = new AsyncLocalStorage<Caller>()

class ProcessDied extends Error {
  constructor() {
    super('the process of this call is dead')
  }
}

/**
 * A process of Crucible as far as the world can tell one: what runs in its name asks the world through `gate`, and once it is dead nothing
 * of it goes out, and no answer comes in.
 */
export class OurProcess {
  isDead = false
  /** Resolves with its death. */
  readonly died: Promise<void>
  private tellOfDeath = (): void => undefined

  /**
   * @param activities what it does, by name
   * @param meet told of every call, `activity: call`; says whether the process dies of it
   */
  constructor(
    private readonly activities: Activities,
    private readonly meet: (call: string) => Death | undefined,
  ) {
    this.died = new Promise((resolve) => (this.tellOfDeath = resolve))
  }

  /** Does work in the name of the process, as one of its activities. */
  run<T>(activity: string, work: () => Promise<T>): Promise<T> {
    return callers.run({ process: this, activity }, work)
  }

  /** Does what it is called for, in the name in which this code runs. */
  perform(name: string, input: unknown): Promise<unknown> {
    const activity = this.activities[name]
    if (activity === undefined) throw new Error(`this process has no activity ${name}`)
    return activity(input as never)
  }

  die(): void {
    this.isDead = true
    this.tellOfDeath()
  }

  async call<T>(call: string, effect: () => Promise<T>): Promise<T> {
    if (this.isDead) throw new ProcessDied()
    const death = this.meet(call)
    if (death === undefined) {
      const answer = await effect()
      if (this.isDead) throw new ProcessDied()
      return answer
    }
    if (death.moment === 'after') await effect().catch(() => undefined)
    if (death.moment === 'in') arriveLater(effect, death.lateMs)
    this.die()
    throw new ProcessDied()
  }
}

/** A call that was sent is under way even if its sender dies. */
function arriveLater(effect: () => Promise<unknown>, lateMs: number): void {
  void sleep(lateMs)
    .then(effect)
    .catch(() => undefined)
}

/** A call to the world: of the process in whose name this code runs, or unchanged if it runs in none. */
export function gate<T>(call: string | (() => string), effect: () => Promise<T>): Promise<T> {
  const caller = callers.getStore()
  if (caller === undefined) return effect()
  return caller.process.call(`${caller.activity}: ${typeof call === 'string' ? call : call()}`, effect)
}

/** The process in whose name this code runs. */
export function callingProcess(): OurProcess {
  const caller = callers.getStore()
  if (caller === undefined) throw new Error('this runs in the name of no process')
  return caller.process
}
