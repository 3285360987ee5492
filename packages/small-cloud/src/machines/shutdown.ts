import { SAID_NOTHING, type ProgramAnswer, type ProgramCall } from './control'
import { ProgramError } from './errors'
import { Timer } from './timer'

const MINUTE_MS = 60_000
/** Accepted arguments of the power-off programs that have no effect here. */
const WITHOUT_EFFECT = ['-h', '-P', '-p', '-f', '--poweroff', '--no-wall', '--force', '--halt', '-H', '-k']

/** `shutdown`: now, later, or cancelled. */
export class Shutdown {
  private scheduled: Timer | undefined

  constructor(
    /** Turns the machine off in order. */
    private readonly powerOff: () => void,
    /** Milliseconds since the epoch. */
    private readonly now: () => number = Date.now,
  ) {}

  call({ program, arguments: args }: ProgramCall): ProgramAnswer {
    if (args.includes('-r') || args.includes('--reboot') || program === 'reboot')
      throw new ProgramError(`${program}: machines of this cloud do not start again`)
    if (args.includes('-c')) return this.cancel()
    const words = args.filter((word) => !WITHOUT_EFFECT.includes(word))
    if (program !== 'shutdown') return this.schedule(0)
    const option = words.find((word) => word.startsWith('-'))
    if (option !== undefined) throw new ProgramError(`shutdown: unrecognized option '${option}'`)
    // The text after the time is a message for logged-in users.
    return this.schedule(this.afterMs(words[0] ?? '+1'))
  }

  cancel(): ProgramAnswer {
    this.scheduled?.cancel()
    this.scheduled = undefined
    return SAID_NOTHING
  }

  private schedule(afterMs: number): ProgramAnswer {
    this.cancel()
    if (afterMs === 0) {
      this.powerOff()
      return SAID_NOTHING
    }
    this.scheduled = new Timer(afterMs, this.powerOff)
    const at = new Date(this.now() + afterMs).toUTCString().replace('GMT', 'UTC')
    return { ...SAID_NOTHING, stderr: `Shutdown scheduled for ${at}, use 'shutdown -c' to cancel.\n` }
  }

  /** `now`, minutes with or without a plus, or the time of the day in UTC, the machines' time zone. */
  private afterMs(time: string): number {
    if (time === 'now') return 0
    const minutes = /^\+?(\d+)$/.exec(time)?.[1]
    if (minutes !== undefined) return Number(minutes) * MINUTE_MS
    const [, hour, minute] = /^([01]?\d|2[0-3]):([0-5]\d)$/.exec(time) ?? []
    if (hour === undefined) throw new ProgramError(`Failed to parse time specification: ${time}`)
    const now = new Date(this.now())
    const at = Date.UTC(
      now.getUTCFullYear(),
      now.getUTCMonth(),
      now.getUTCDate(),
      Number(hour),
      Number(minute),
    )
    return at - this.now() + (at <= this.now() ? 24 * 60 * MINUTE_MS : 0)
  }
}
