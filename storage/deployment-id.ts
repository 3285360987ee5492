/** Ids of deployments: valid in every provider's tags. */
const DEPLOYMENT_ID_PATTERN = /^dep-[0-9a-z]{10}$/

/** Parses the content of `deployment.json`. Throws for another text. */
export function parseDeployment(text: string): { id: string } {
  return checkDeployment(JSON.parse(text) as unknown)
}

/** Throws unless the value has the id of a deployment. */
export function checkDeployment(value: unknown): { id: string } {
  const id = (value as { id?: unknown } | null)?.id
  if (typeof id === 'string' && DEPLOYMENT_ID_PATTERN.test(id)) return { id }
  throw new Error(`${JSON.stringify(id)} is not the id of a deployment ("dep-" and ten of a-z, 0-9)`)
}
