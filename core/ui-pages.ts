/** Addresses of pages in Temporal's Web UI. */

/** Below it are the pages of all workflows of a namespace. */
export function workflowPages(temporalUiUrl: string, namespace: string): string {
  return `${temporalUiUrl}/namespaces/${encodeURIComponent(namespace)}/workflows`
}

/** The page of a workflow. */
export function workflowPage(pages: string, workflowId: string): string {
  return `${pages}/${encodeURIComponent(workflowId)}`
}
