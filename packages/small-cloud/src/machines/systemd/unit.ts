/** What a service or a timer has come to, in systemd's words. */
export interface UnitState {
  active: 'active' | 'activating' | 'deactivating' | 'inactive' | 'failed'
  sub: string
}

export interface Unit {
  /** With its suffix. */
  readonly name: string
  readonly description: string
  readonly state: UnitState
  /** What `show` tells, by property. */
  properties(): Record<string, string>
  stop(): Promise<void>
  /** What it printed lately, oldest first. */
  log(lines: number): string[]
}
