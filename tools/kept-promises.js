/**
 * A lint rule for workflow code. A promise that is stored in a variable may reject before anything awaits it; Temporal then fails the
 * workflow task, and every replay meets the same rejection. Such a promise goes through `kept()` of `workflows/forever.ts`.
 */
const keptPromises = {
  meta: {
    type: 'problem',
    schema: [],
    messages: {
      unkept: 'Wrap a promise that is awaited later in kept() (workflows/forever.ts), or await it.',
    },
  },
  create(context) {
    const { program, esTreeNodeToTSNodeMap } = context.sourceCode.parserServices
    const checker = program.getTypeChecker()
    const isPromise = (node) => {
      const type = checker.getTypeAtLocation(esTreeNodeToTSNodeMap.get(node))
      return type.getProperty('then') !== undefined && type.getProperty('catch') !== undefined
    }
    const isKept = (node) => node.type === 'CallExpression' && node.callee.name === 'kept'
    const check = (node) => {
      if (node != null && node.type === 'CallExpression' && !isKept(node) && isPromise(node))
        context.report({ node, messageId: 'unkept' })
    }
    return {
      VariableDeclarator: ({ init }) => check(init),
      AssignmentExpression: ({ right }) => check(right),
      PropertyDefinition: ({ value }) => check(value),
    }
  },
}

module.exports = { keptPromises }
