/** What a service has come to, in systemd's words. */
export interface UnitState {
  active: 'active' | 'activating' | 'deactivating' | 'inactive' | 'failed'
  sub: string
}
