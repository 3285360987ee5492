import type { BackendDeps } from '../registry'
import type { ModalApi, createApi } from './api'
import type { ModalConfig } from './config'

/** Dependencies of the backend on its composition. */
export type ModalDeps = Pick<BackendDeps, 'clock' | 'deployment' | 'handOver'>

/** Environment of every verb. */
export interface Host {
  config: ModalConfig
  deps: ModalDeps
  api: ModalApi
}

export function createHost(config: ModalConfig, deps: ModalDeps, openApi: typeof createApi): Host {
  const { url, token } = config
  return { config, deps, api: openApi({ url, token }) }
}
