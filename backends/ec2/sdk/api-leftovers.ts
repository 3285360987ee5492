/** A launch template, as far as it is of interest whether anybody still needs it. */
export interface Template {
  id: string
  name: string
  createdAtMs: number
  tags: Record<string, string>
}

/** A request for a spot machine that is not over for the provider. */
export interface SpotRequest {
  id: string
  state: string
  /** Of the machine that came of it; missing while none did. */
  machineId?: string
  createdAtMs: number
  tags: Record<string, string>
}

/** What costs nothing by itself, and yet counts against a limit or may come to cost something. */
export interface LeftoversApi {
  templates(
    wanted: { tag: { name: string; value: string } } | { id: string },
    signal: AbortSignal,
  ): Promise<Template[]>
  deleteTemplate(id: string, signal: AbortSignal): Promise<void>
  /** All of the account that are open or active, or the one of an id: those of earlier versions carry no tags. */
  spotRequests(id: string | undefined, signal: AbortSignal): Promise<SpotRequest[]>
  /** Takes a request back; a machine that came of it goes on. */
  cancelSpotRequest(id: string, signal: AbortSignal): Promise<void>
}
