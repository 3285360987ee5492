/** The outcome of a service, in systemd's terms. */
export interface UnitState {
  active: 'active' | 'activating' | 'deactivating' | 'inactive' | 'failed'
  sub: string
}
