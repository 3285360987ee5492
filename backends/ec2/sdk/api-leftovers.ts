/** The parts of a launch template that decide whether it is still needed. */
export interface Template {
  id: string
  name: string
  createdAtMs: number
  tags: Record<string, string>
}

/** A spot request that the provider still considers open. */
export interface SpotRequest {
  id: string
  state: string
  /** Id of the machine that it launched; missing without one. */
  machineId?: string
  createdAtMs: number
  tags: Record<string, string>
}

/** Resources that are free but count against a limit, or may start to cost money. */
export interface LeftoversApi {
  templates(
    wanted: { tag: { name: string; value: string } } | { id: string },
    signal: AbortSignal,
  ): Promise<Template[]>
  deleteTemplate(id: string, signal: AbortSignal): Promise<void>
  /** Returns all open or active requests of the account, or one by id; some have no tags. */
  spotRequests(id: string | undefined, signal: AbortSignal): Promise<SpotRequest[]>
  /** Cancels a request; a machine that it launched keeps running. */
  cancelSpotRequest(id: string, signal: AbortSignal): Promise<void>
}
