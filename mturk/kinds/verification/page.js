{% include "levels.js" %}
  const adapt = adaptLevels;
